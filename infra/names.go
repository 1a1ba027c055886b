package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"
)

// Resources that remain when a stack is destroyed keep their names, so a new stack must not
// use the name of a table or a queue again. The names contain the id of the stack, which is
// new each time a stack is made.

// kept is the removal policy of resources with data: a first deployment that fails removes them
// again, nothing else deletes them.
const kept = awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE

// unique is the prefix of names of this stack: gateway-1a2b3c4d-.
func unique(stack awscdk.Stack, o options) string {
	id := awscdk.Fn_Select(jsii.Number(2), awscdk.Fn_Split(jsii.String("/"), stack.StackId(), nil))
	return o.name + "-" + *awscdk.Fn_Select(jsii.Number(0), awscdk.Fn_Split(jsii.String("-"), id, nil)) + "-"
}

// tablesBegin is the prefix of the names of tables.
func (d *dataStack) tablesBegin(o options) string {
	if o.tablePrefix != "" {
		return o.tablePrefix
	}
	return unique(d.stack, o)
}
