Every setting is an option, a TOML key and an environment variable, from one table; a misspelt one is told which was meant.
