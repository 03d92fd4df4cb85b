"""The organ that holds the keys and the purse: lends credentials, reserves a call before it is made, settles it after."""
