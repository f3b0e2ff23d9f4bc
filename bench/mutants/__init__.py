"""Mutants of correct operators: how many of them do the properties notice?"""
