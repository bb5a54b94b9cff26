"""AZR's three types of code task and its fourth: which exception does the program raise?"""
