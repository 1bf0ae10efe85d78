# Names, limits and what must fit what, without any provider: the conditions are the validations of the variables, so
# that a plan ends with a sentence that says what to set, before anything is created.
