"""What every kernel is made of: its interface, its call site, C types, statements and costs."""
