"""Settings as data: every topic, broker and group setting, how it is parsed, and where its value comes from."""
