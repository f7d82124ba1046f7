"""What the files of a log say, for people to read."""
