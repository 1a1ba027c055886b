package main

import (
	"maps"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsapigateway"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/placement"
)

// Sizes of the functions that serve requests. The data plane spends most of its time waiting
// for models: it has the smallest memory that maintains the p99. reservedConcurrency limits the
// administration where it must not take concurrency from the data plane.
var (
	dataPlaneShape      = shape{memory: 192, timeout: 900}
	administrationShape = shape{memory: 256, timeout: 29}
	analyticsShape      = shape{memory: 1024, timeout: 29}
)

// accessLine is what the API logs of a request. It costs a quarter of the standard line and
// leaves out the address and the user agent, which the edge logs.
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
