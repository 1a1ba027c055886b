//go:build aws

package main

import "gateway/local/cloud"

func init() {
	aws = cloud.Backends{}
	aws.Configure()
}
