"""Parameters as an optimizer holds them: groups, flat storage, names, warnings of misuse."""
