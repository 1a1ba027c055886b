package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// liveAlias is the name of the alias that callers use. It points to the version of the last
// deploy, and can be pointed back to an earlier one.
const liveAlias = "live"

// live makes the alias of a function and publishes its version.
func live(stack awscdk.Stack, name string, fn awslambda.Function) awslambda.Alias {
	return awslambda.NewAlias(stack, jsii.String("Live-"+name), &awslambda.AliasProps{
		AliasName: jsii.String(liveAlias), Version: fn.CurrentVersion(),
	})
}

// maxErrorRate is the share of answers with 5xx above which a new version is withdrawn.
// Failures of providers, which are passed on, count too.
const maxErrorRate = 0.05

// shifter moves aliases to new versions step by step, and back when the alarm goes off.
// CodeDeploy does it, which costs nothing here; CloudFormation waits for it.
type shifter struct {
	stack       awscdk.Stack
	alarm       awscloudwatch.Alarm
	application awscodedeploy.LambdaApplication
	role        awsiam.Role
	config      awscodedeploy.ILambdaDeploymentConfig
}

// newShifter is nil where a new version takes over at once.
func newShifter(stack awscdk.Stack, o options) *shifter {
	if o.shift == "off" {
		return nil
	}
	s := &shifter{stack: stack, config: awscodedeploy.LambdaDeploymentConfig_CANARY_10PERCENT_5MINUTES()}
	if o.shift == "linear" {
		s.config = awscodedeploy.LambdaDeploymentConfig_LINEAR_10PERCENT_EVERY_1MINUTE()
	}
	s.application = awscodedeploy.NewLambdaApplication(stack, jsii.String("Versions"), nil)
	s.role = awsiam.NewRole(stack, jsii.String("Role-versions"), &awsiam.RoleProps{
		AssumedBy:       awsiam.NewServicePrincipal(jsii.String("codedeploy.amazonaws.com"), nil),
		Description:     jsii.String("Moves aliases to new versions"),
		ManagedPolicies: &[]awsiam.IManagedPolicy{awsiam.ManagedPolicy_FromAwsManagedPolicyName(jsii.String("service-role/AWSCodeDeployRoleForLambdaLimited"))},
	})
	s.alarm = awscloudwatch.NewAlarm(stack, jsii.String("Alarm-new-version"), &awscloudwatch.AlarmProps{
		AlarmName:        jsii.String(o.name + "-new-version"),
		AlarmDescription: jsii.String("More than 5 % of the answers are 5xx; a version that is being introduced is taken back. What to do: functions/docs/guides/runbook.md, new-version"),
		Metric: awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String("AWS/ApiGateway"), MetricName: jsii.String("5XXError"), Statistic: jsii.String("Average"), Period: awscdk.Duration_Minutes(jsii.Number(1)),
			DimensionsMap: &map[string]*string{"ApiName": jsii.String(o.name), "Stage": jsii.String("v1")},
		}),
		Threshold: jsii.Number(maxErrorRate), EvaluationPeriods: jsii.Number(3), DatapointsToAlarm: jsii.Number(2),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD, TreatMissingData: awscloudwatch.TreatMissingData_NOT_BREACHING,
	})
	if o.alarms != "" {
		topic := awssns.Topic_FromTopicArn(stack, jsii.String("Topic-new-version"), jsii.String(o.alarms))
		s.alarm.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
		s.alarm.AddOkAction(awscloudwatchactions.NewSnsAction(topic))
	}
	return s
}

// shift makes an alias move step by step.
func (s *shifter) shift(name string, alias awslambda.Alias) {
	if s == nil {
		return
	}
	awscodedeploy.NewLambdaDeploymentGroup(s.stack, jsii.String("Shift-"+name), &awscodedeploy.LambdaDeploymentGroupProps{
		Alias: alias, Application: s.application, DeploymentConfig: s.config, Role: s.role, Alarms: &[]interfacesawscloudwatch.IAlarmRef{s.alarm},
		AutoRollback: &awscodedeploy.AutoRollbackConfig{FailedDeployment: jsii.Bool(true), StoppedDeployment: jsii.Bool(true), DeploymentInAlarm: jsii.Bool(true)},
	})
}
