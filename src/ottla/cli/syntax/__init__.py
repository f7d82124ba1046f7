"""What can be typed: one file a command, with nothing in it but words, so that help and completion are there at once.

Each command names the function that runs it as `module:function`; it is imported when it is run, and not before.
"""
