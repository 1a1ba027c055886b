package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// reasons are the rules that do not fit, and why, by stack.
type reasons map[string]string

// suppress records why rules of the pack are not followed.
func suppress(in *installation) {
	for stack, of := range map[awscdk.Stack]reasons{
		in.data.stack: {
			"AwsSolutions-SMG4": "A task of the repair worker replaces the origin secret: it waits for the edge, of which the service's own rotation knows nothing",
		},
		in.functions.stack: {
			"AwsSolutions-IAM4":  "The account's role for API Gateway's logs and the one for CodeDeploy are AWS's own policies, made for them",
			"AwsSolutions-IAM5":  "Objects of the one bucket are named by organisation and time; the token of an image registry has no resource",
			"AwsSolutions-APIG3": "The functions answer the edge alone, and the edge has the firewall",
			"AwsSolutions-APIG2": "The functions check every request themselves and name the field; the API's own check would answer in another shape",
			"AwsSolutions-ECS4":  "Container Insights is paid for by the metric; the gateway counts its requests itself, and the balancer its tasks",
			"AwsSolutions-ECS2":  "The variables hold names of resources and the origin secret as a dynamic reference, no credentials",
		},
		in.workers.stack: {
			"AwsSolutions-IAM5": "Objects of the one bucket are named by organisation and time; schedules may start each version of one function; of distributions the one with the installation's tag",
			"AwsSolutions-SQS3": "The queue is one of dead letters",
		},
		in.edge.stack: {
			"AwsSolutions-CFR4": "Without a domain of its own the distribution has CloudFront's certificate, whose lowest version cannot be chosen",
			"AwsSolutions-CFR2": "firewall=off is asked for by who deploys",
			"AwsSolutions-CFR3": "CloudFront writes no logs to buckets of some regions",
		},
	} {
		var list []*cdknag.NagPackSuppression
		for id, reason := range of {
			list = append(list, &cdknag.NagPackSuppression{Id: jsii.String(id), Reason: jsii.String(reason)})
		}
		cdknag.NagSuppressions_AddStackSuppressions(stack, &list, jsii.Bool(true))
	}
}
