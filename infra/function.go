package main

import (
	"path/filepath"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"
)

// shape is how a function runs.
type shape struct {
	memory  float64 // MB
	timeout float64 // seconds
	loops   bool    // it sends to the queue that calls it, as long as there is work
}

// newFunction makes a function with its own role, log group and rights.
func newFunction(stack awscdk.Stack, d *dataStack, o options, name string, s shape, r rights, extra map[string]*string, more ...awsiam.PolicyStatement) awslambda.Function {
	logs := newLogs(stack, d, o, name)
	role := awsiam.NewRole(stack, jsii.String("Role-"+name), &awsiam.RoleProps{
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		Description: jsii.String("What the function " + name + " may do"),
	})
	role.AddToPolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Actions: jsii.Strings("logs:CreateLogStream", "logs:PutLogEvents"), Resources: &[]*string{logs.LogGroupArn()},
	}))
	r.grant(d, o, role)
	for _, s := range more {
		role.AddToPolicy(s)
	}
	env := r.environment(d, o)
	// The limit of Go's memory is below the function's, so that Go collects garbage in time.
	env["GOMEMLIMIT"] = jsii.String(strconv.Itoa(int(s.memory*9/10)) + "MiB")
	for k, v := range extra {
		env[k] = v
	}
	loop := awslambda.RecursiveLoop_TERMINATE
	if s.loops {
		loop = awslambda.RecursiveLoop_ALLOW
	}
	props := &awslambda.FunctionProps{
		Runtime: awslambda.Runtime_PROVIDED_AL2023(), Architecture: awslambda.Architecture_ARM_64(), Handler: jsii.String("bootstrap"),
		Code: awslambda.Code_FromAsset(jsii.String(filepath.Join(o.dist, name)), nil),
		Role: role, LogGroup: logs, LoggingFormat: awslambda.LoggingFormat_JSON,
		SystemLogLevelV2: awslambda.SystemLogLevel_WARN, ApplicationLogLevelV2: o.applicationLogLevel(),
		MemorySize: jsii.Number(s.memory), Timeout: awscdk.Duration_Seconds(jsii.Number(s.timeout)),
		Environment: &env, RecursiveLoop: loop,
		CurrentVersionOptions: &awslambda.VersionOptions{RemovalPolicy: kept}, // so that an alias can go back to an earlier version
	}
	if n, ok := o.reserved[name]; ok {
		props.ReservedConcurrentExecutions = jsii.Number(n)
	}
	return awslambda.NewFunction(stack, jsii.String("Function-"+name), props)
}

// newLogs makes a log group below /<installation>/. CloudWatch encrypts it with its own
// key: no prompt, answer or credential is logged, and a key of ours would cost a dollar a
// month.
func newLogs(stack awscdk.Stack, d *dataStack, o options, name string) awslogs.LogGroup {
	return awslogs.NewLogGroup(stack, jsii.String("Logs-"+name), &awslogs.LogGroupProps{
		LogGroupName: jsii.String("/" + o.name + "/" + name), Retention: awslogs.RetentionDays_ONE_MONTH,
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
}
