"""A configuration as keys: one name per fact, what the class would fill in, and the language model inside."""
