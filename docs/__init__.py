"""The site: pages in Markdown, and what writes the rest of them. ``python -m docs`` builds it."""
