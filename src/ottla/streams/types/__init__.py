"""Types of keys and values: how Python has them, how Spark has them, how topics have them."""
