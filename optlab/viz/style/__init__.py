"""What all pictures share: theme, layout, geometry, contours, text."""
