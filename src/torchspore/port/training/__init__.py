"""Training scripts in torch: optimizers and schedules, training steps, `Model.train` as a loop, data sets.

`facts` finds what the names of a script mean, `owners` which attributes of the user's Cells are optimizers, `user_classes` which callbacks
and schedules can be ported; `optimizers`, `precision`, `steps`, `callbacks`, `loops` and `datasets` write their torch form; `script` calls
them for each statement and expression. What has no rule stays as a comment beside a call of `to_do_by_hand`.
"""
