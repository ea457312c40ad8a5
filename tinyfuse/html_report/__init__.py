"""`report --html`: one page that shows a plan to people. data.py says what is shown, page.py makes the file; what draws
it in a browser is templates/report/."""
