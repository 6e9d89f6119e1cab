"""Inputs that were made to do harm, and what each may cost."""
