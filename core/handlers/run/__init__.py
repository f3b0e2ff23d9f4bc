"""Call handlers: their arguments, and their effects one by one."""
