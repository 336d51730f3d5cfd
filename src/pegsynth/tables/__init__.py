"""Files, databases and dataframes, in and out; one row never changes how another is read (R30)."""
