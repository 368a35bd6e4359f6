"""What people and spreadsheets read: formats of values that others computed."""
