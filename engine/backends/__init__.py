"""Where answers come from, a file each: `llama`, `script`, `upstream`."""
