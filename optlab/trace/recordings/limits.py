"""How much waits to be written into the columns of a trace."""

#: Elements that waiting steps may keep alive, and the most steps that wait.
WAITING_ELEMENTS = 20_000
WAITING_STEPS = 512
