"""`report --html`: a page that shows a plan. data.py selects the data, page.py makes the file, and templates/report/
draws it in a browser."""
