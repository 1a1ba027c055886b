package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// What a destroyed stack leaves behind keeps its name, so no name of a table or a
// queue may come back: each is of the stack that makes it, whose id is new each
// time it is made.

// kept is the fate of what holds data: a first deploy that fails takes it along,
// nothing else deletes it.
const kept = awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE

// unique is the beginning of names of this stack: gateway-1a2b3c4d-.
func unique(stack awscdk.Stack, o options) string {
	id := awscdk.Fn_Select(jsii.Number(2), awscdk.Fn_Split(jsii.String("/"), stack.StackId(), nil))
	return o.name + "-" + *awscdk.Fn_Select(jsii.Number(0), awscdk.Fn_Split(jsii.String("-"), id, nil)) + "-"
}

// tablesBegin is the beginning of the names of tables.
func (d *dataStack) tablesBegin(o options) string {
	if o.tablePrefix != "" {
		return o.tablePrefix
	}
	return unique(d.stack, o)
}
