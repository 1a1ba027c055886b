package main

import (
	"maps"
	"path/filepath"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscodedeploy"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/interfaces/interfacesawscloudwatch"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/placement"
)

// accessLine is what the API logs of a request. It costs a quarter of the standard line and
// omits the address and the user agent, which the edge logs.
const accessLine = `{"request_id":"$context.requestId","method":"$context.httpMethod","route":"$context.resourcePath","status":"$context.status",` +
	`"ms":"$context.responseLatency","bytes":"$context.responseLength","error":"$context.error.responseType"}`

// functionStack serves requests: the functions, their API and the container.
type functionStack struct {
	stack     awscdk.Stack
	api       awsapigateway.SpecRestApi
	functions map[string]awslambda.Function
	live      map[string]awslambda.Alias // the aliases that callers use
	container *containerService          // nil: none
}

func newFunctionStack(scope constructs.Construct, props *awscdk.StackProps, o options, d *dataStack) *functionStack {
	f := &functionStack{stack: awscdk.NewStack(scope, jsii.String("Functions"), props), functions: map[string]awslambda.Function{}, live: map[string]awslambda.Alias{}}
	shifter := newShifter(f.stack, o)
	names, places := placement.Families()
	for _, name := range names {
		s := dataPlaneShape
		if places[name] == placement.Buffered {
			s = administrationShape
		}
		if name == "analytics" || name == "logs" {
			s = analyticsShape
		}
		extra := o.outward()
		maps.Copy(extra, o.inward(d))
		var lent []awsiam.PolicyStatement
		take := func(s awsiam.PolicyStatement) { lent = append(lent, s) }
		switch {
		case places[name] == placement.Stream:
			o.lend(f.stack, extra, take)
		case name == "secretreferences", name == "mcpservers", name == "agentservers": // these fetch secrets with the roles that requests use
			o.lendRoles(extra, take)
		}
		f.functions[name] = newFunction(f.stack, d, o, name, s, rightsOf(name, places[name]), extra, lent...)
		f.live[name] = live(f.stack, name, f.functions[name])
		if places[name] == placement.Stream {
			shifter.shift(name, f.live[name])
		}
	}
	f.newAPI(o, d)
	if o.hasContainer() {
		f.container = newContainer(f.stack, d, o)
	}
	return f
}

func (f *functionStack) newAPI(o options, d *dataStack) {
	access := newLogs(f.stack, d, o, "api")
	definition := openAPI(o, o.name, func(family string) string { return *f.live[family].FunctionArn() })
	f.api = awsapigateway.NewSpecRestApi(f.stack, jsii.String("Api"), &awsapigateway.SpecRestApiProps{
		RestApiName: jsii.String(o.name), ApiDefinition: awsapigateway.ApiDefinition_FromInline(definition),
		EndpointTypes:  &[]awsapigateway.EndpointType{awsapigateway.EndpointType_REGIONAL},
		CloudWatchRole: jsii.Bool(true), CloudWatchRoleRemovalPolicy: kept, FailOnWarnings: jsii.Bool(true),
		DeployOptions: &awsapigateway.StageOptions{
			StageName:            jsii.String("v1"),
			AccessLogDestination: awsapigateway.NewLogGroupLogDestination(access),
			AccessLogFormat:      awsapigateway.AccessLogFormat_Custom(jsii.String(accessLine)),
			LoggingLevel:         awsapigateway.MethodLoggingLevel_ERROR,
			DataTraceEnabled:     jsii.Bool(false), // it would log keys and prompts
			MetricsEnabled:       jsii.Bool(false), // five metrics for each method, at 0.30 USD each
		},
	})
	f.api.LatestDeployment().AddToLogicalId(map[string]any{"placement": placement.Hash(), "container": o.container, "called": liveAlias})
	for _, fn := range f.live {
		fn.AddPermission(jsii.String("Api"), &awslambda.Permission{
			Principal: awsiam.NewServicePrincipal(jsii.String("apigateway.amazonaws.com"), nil),
			SourceArn: f.api.ArnForExecuteApi(jsii.String("*"), jsii.String("/*"), jsii.String("v1")),
		})
	}
}

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

// liveAlias is the name of the alias that callers use. It points to the version of the last
// deploy, and can be pointed back to an earlier one.
const liveAlias = "live"

// live makes the alias of a function and publishes its version.
func live(stack awscdk.Stack, name string, fn awslambda.Function) awslambda.Alias {
	return awslambda.NewAlias(stack, jsii.String("Live-"+name), &awslambda.AliasProps{
		AliasName: jsii.String(liveAlias), Version: fn.CurrentVersion(),
	})
}

// maxErrorRate is the share of responses with 5xx above which a new version is withdrawn.
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
		AlarmDescription: jsii.String("More than 5 % of the responses are 5xx; a version that is being deployed is rolled back. What to do: functions/docs/guides/runbook.md, new-version"),
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

// Sizes of the functions that serve requests. The data plane spends most of its time waiting
// for models: it has the smallest memory that maintains the p99. reservedConcurrency limits the
// administration where it must not take concurrency from the data plane.
var (
	dataPlaneShape      = shape{memory: 192, timeout: 900}
	administrationShape = shape{memory: 256, timeout: 29}
	analyticsShape      = shape{memory: 1024, timeout: 29}
)

// workerShapes are the shapes of the workers. Few run at a time, because that makes larger
// segments, and each segment has its own cost, whatever it holds.
var workerShapes = map[string]shape{
	"usage":   {memory: 512, timeout: workerTimeout},
	"audit":   {memory: 256, timeout: workerTimeout},
	"repair":  {memory: 1024, timeout: 900},
	"requeue": {memory: 128, timeout: 60},
	// A step spends most of its time waiting for 25 answers.
	"batchruns": {memory: 512, timeout: runTimeout, loops: true},
	"exports":   {memory: 1024, timeout: exportTimeout, loops: true},
}
