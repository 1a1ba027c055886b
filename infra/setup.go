package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

// newSetupOutputs puts out, at the end of a deploy, how to make the first keys.
func newSetupOutputs(stack awscdk.Stack, worker awslambda.Function) {
	awscdk.NewCfnOutput(stack, jsii.String("SetupFunction"), &awscdk.CfnOutputProps{
		Value: worker.FunctionName(), Description: jsii.String("The worker whose task setup makes the first keys"),
	})
	command := `aws lambda invoke --region ` + *stack.Region() + ` --function-name ` + *worker.FunctionName() +
		` --cli-binary-format raw-in-base64-out --payload '{"task":"setup"}' keys.json`
	awscdk.NewCfnOutput(stack, jsii.String("Setup"), &awscdk.CfnOutputProps{
		Value: jsii.String(command), Description: jsii.String("Makes the first organisation and its keys, once, and writes them to keys.json"),
	})
}
