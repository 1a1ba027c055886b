// Command infra is the CDK app of the gateway: data, functions, workers and edge.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

// exemption is a rule of the pack that resources do not follow, and why.
type exemption struct {
	at   string // the paths of the resources, as a regular expression
	rule string // without AwsSolutions-
	// of are the findings of the rule that the exemption covers, as regular expressions of
	// ECMAScript; none: all findings.
	of     []string
	reason string
}

// Roles of functions and the container.
const roles = `Functions/Role-[a-z]+|Workers/Role-[a-z]+|Functions/Task/TaskRole`

// exemptions are all of them. A finding that no exemption covers fails the tests.
var exemptions = []exemption{
	{"Data/OriginSecret", "SMG4", nil, "A task of the repair worker replaces the origin secret: it waits for the edge, of which the service's own rotation knows nothing"},
	{roles, "IAM5", []string{`/^Resource::.*\/(bodies|cache|exports|held|queries|segments)\/\*$/`}, "Objects below a prefix are named by organization and time"},
	{roles, "IAM5", []string{`/^Resource::.*:s3vectors:.*\/index\/\*$/`}, "The vector bucket is the semantic cache's own: its indexes are named by numbers of dimensions"},
	{roles, "IAM5", []string{`/^Resource::.*\/index\/answers-\*$/`}, "Indexes of the one table are named by numbers of dimensions"},
	{roles, "IAM5", []string{`/^Resource::.*:bedrock:.*$/`}, "awsServiceRole=bedrock lets saved providers name any model"},
	{"Workers/Role-repair", "IAM5", []string{`/^Resource::.*:cloudfront:.*:distribution\/\*$/`}, "Of distributions the one with the installation's tag"},
	{"Workers/Role-repair", "IAM5", []string{`/^Resource::.*:wafv2:.*:global\/webacl\/[a-z0-9-]+-edge\/\*$/`}, "A firewall's ARN ends with an id that is made with it, in another stack"},
	{"Functions/Task/ExecutionRole", "IAM5", []string{`/^Resource::\*$/`}, "The token of an image registry has no resource"},
	{"Functions/Api/CloudWatchRole", "IAM4", []string{`/AmazonAPIGatewayPushToCloudWatchLogs$/`}, "The account's role for API Gateway's logs is AWS's own policy, made for it"},
	{"Functions/Role-versions", "IAM4", []string{`/AWSCodeDeployRoleForLambdaLimited$/`}, "CodeDeploy's role is AWS's own policy, made for it"},
	{"Functions/Api", "APIG2", nil, "The functions check every request themselves and name the field; the API's own check would answer in another shape"},
	{"Functions/Api/DeploymentStage.v1", "APIG3", nil, "The functions answer the edge alone, and the edge has the firewall"},
	{"Functions/BalancerGroup", "EC23", nil, "The balancer is private, and the edge's requests come from addresses of CloudFront"},
	{"Functions/Cluster", "ECS4", nil, "Container Insights is paid for by the metric; the gateway counts its requests itself, and the balancer its tasks"},
	{"Functions/Task", "ECS2", nil, "The variables hold names of resources and the origin secret as a dynamic reference, no credentials"},
	{"Workers/Dead-tasks", "SQS3", nil, "The queue is one of dead letters"},
	{"Edge/Custom::CDKBucketDeployment[0-9A-Za-z]+", "IAM4", nil, "The function that uploads the console's files comes with the CDK; its role writes logs by AWS's own policy"},
	{"Edge/Custom::CDKBucketDeployment[0-9A-Za-z]+", "IAM5", nil, "The same function reads the assets of the CDK and writes objects into the console's bucket, whatever their names are"},
	{"Edge/Custom::CDKBucketDeployment[0-9A-Za-z]+", "L1", nil, "The CDK chooses its runtime"},
	{"Edge/Distribution", "CFR4", nil, "Without a domain of its own the distribution has CloudFront's certificate, whose lowest version cannot be chosen"},
	{"Edge/Distribution", "CFR2", nil, "firewall=off is a choice of the deployer"},
	{"Edge/Distribution", "CFR3", nil, "CloudFront writes no logs to buckets of some regions"},
}

// suppress notes at the resources why they do not follow rules of the pack, and returns for
// each exemption at how many resources it was noted.
func suppress(in *installation) (noted []int) {
	noted = make([]int, len(exemptions))
	paths := make([]*regexp.Regexp, len(exemptions))
	for i, e := range exemptions {
		paths[i] = regexp.MustCompile(`^(?:` + e.at + `)$`)
	}
	for _, stack := range []awscdk.Stack{in.data.stack, in.functions.stack, in.workers.stack, in.edge.stack} {
		for _, c := range *stack.Node().FindAll(constructs.ConstructOrder_PREORDER) {
			path := *c.Node().Path()
			for i, e := range exemptions {
				if !paths[i].MatchString(path) {
					continue
				}
				note := &cdknag.NagPackSuppression{Id: jsii.String("AwsSolutions-" + e.rule), Reason: jsii.String(e.reason)}
				if len(e.of) > 0 {
					var findings []any
					for _, f := range e.of {
						findings = append(findings, &cdknag.RegexAppliesTo{Regex: jsii.String(f)})
					}
					note.AppliesTo = &findings
				}
				cdknag.NagSuppressions_AddResourceSuppressions(c, &[]*cdknag.NagPackSuppression{note}, jsii.Bool(true))
				noted[i]++
			}
		}
	}
	return noted
}

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(&awscdk.AppProps{Outdir: outdir(os.Getenv("CDK_OUTDIR"))})
	o, err := optionsOf(app)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	build(app, o)
	app.Synth(nil)
}

// outdir is the folder for the templates. The CDK's command line names it as seen from the
// folder above: cdk.json starts the app in infra.
func outdir(named string) *string {
	switch {
	case named == "":
		return nil
	case filepath.IsAbs(named):
		return &named
	}
	above := filepath.Join("..", named)
	return &above
}

// installation are the stacks of one gateway.
type installation struct {
	exempt    []int // for each exemption, the number of resources that it is noted at
	data      *dataStack
	functions *functionStack
	workers   *workerStack
	edge      *edgeStack
	firewall  awscdk.Stack // nil: the firewall is in the edge's stack, or there is none
}

// build makes the stacks. Each stack refers only to earlier ones.
func build(app awscdk.App, o options) *installation {
	props := func(what string) *awscdk.StackProps {
		return &awscdk.StackProps{
			StackName:   jsii.String(o.name + "-" + what),
			Description: jsii.String("AI gateway: " + what),
			Env:         &awscdk.Environment{Region: jsii.String(o.region)},
		}
	}
	awscdk.Tags_Of(app).Add(jsii.String(installationTag), jsii.String(o.name), nil)
	in := &installation{}
	in.data = newDataStack(app, props("data"), o)
	in.functions = newFunctionStack(app, props("functions"), o, in.data)
	in.workers = newWorkerStack(app, props("workers"), o, in.data, in.functions)
	in.edge, in.firewall = newEdgeStack(app, props, o, in.data, in.functions)
	awscdk.Aspects_Of(app).Add(cdknag.NewAwsSolutionsChecks(&cdknag.NagPackProps{Verbose: jsii.Bool(true)}), nil)
	in.exempt = suppress(in)
	return in
}

// newSetupOutputs puts out, at the end of a deploy, how to make the first keys.
func newSetupOutputs(stack awscdk.Stack, worker awslambda.Function) {
	awscdk.NewCfnOutput(stack, jsii.String("SetupFunction"), &awscdk.CfnOutputProps{
		Value: worker.FunctionName(), Description: jsii.String("The worker whose task setup makes the first keys"),
	})
	command := `aws lambda invoke --region ` + *stack.Region() + ` --function-name ` + *worker.FunctionName() +
		` --cli-binary-format raw-in-base64-out --payload '{"task":"setup"}' keys.json`
	awscdk.NewCfnOutput(stack, jsii.String("Setup"), &awscdk.CfnOutputProps{
		Value: jsii.String(command), Description: jsii.String("Makes the first organization and its keys, once, and writes them to keys.json"),
	})
}
