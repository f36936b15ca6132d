"""Maps that mend predictions: fitted on soft labels, judged on rows held out."""
