package main

import "gateway/local/cloud"

// Tests run with AWS linked. The environment tells them all, so they read no
// profile of the user's.
func init() { aws = cloud.Backends{} }
