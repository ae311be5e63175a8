from mindspore import context
context.set_context(print_file_path="print.pb")
