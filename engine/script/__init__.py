"""The script backend's parts: the file's rules, what a prompt and a canvas show, and the distributions."""
