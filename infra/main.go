// Command infra is the CDK app of the gateway: data, functions, workers and edge.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"
)

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
