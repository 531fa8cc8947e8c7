"""What an update rule is: hyper-parameters, slots, scalars and formula; what a step reads of it."""
