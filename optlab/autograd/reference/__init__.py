"""The reference of derivative rules: ``optlab rules NAME`` and `optlab.autograd.rule_of`."""
