"""Sources of rows: files, archives, URLs, Parquet."""
