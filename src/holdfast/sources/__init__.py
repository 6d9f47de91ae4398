"""Where workflows come from besides the database: files, folders that are watched, Python modules."""
