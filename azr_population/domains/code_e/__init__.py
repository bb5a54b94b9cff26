"""AZR's fourth type of code task: which exception does the program raise?"""
