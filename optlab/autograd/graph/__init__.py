"""The recorded graph as data: its nodes one by one, what they save, and what every array is."""
