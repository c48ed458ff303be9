"""What `turnout lending` says: reading logs of routers, joining them, judging each link."""
