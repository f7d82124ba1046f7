"""The only door to Spark: from the plan of a topology to DataFrames."""
