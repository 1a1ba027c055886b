package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsdynamodb"
	"github.com/aws/jsii-runtime-go"
	"github.com/cdklabs/cdk-nag-go/cdknag/v2"

	"gateway/shared/cache/dynamovectors/layout"
)

// maxVectorIndexes is how many numbers of dimensions, with an index each, a table may have.
const maxVectorIndexes = 5

// setVectorDimensions reads numbers of dimensions, separated by commas.
func setVectorDimensions(o *options, v string) bool {
	for _, part := range strings.Split(v, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 || n > layout.MaxDimensions || slices.Contains(o.vectorDimensions, n) {
			return false
		}
		o.vectorDimensions = append(o.vectorDimensions, n)
	}
	return len(o.vectorDimensions) <= maxVectorIndexes
}

// newVectorTable makes the table of the semantic cache's vectors, with one vector index for
// each number of dimensions; nil when there is none. The CDK's classes do not know such
// indexes yet, but CloudFormation does. The table holds only a cache, so it is deleted with
// the stack.
func (d *dataStack) newVectorTable(o options) awsdynamodb.TableV2 {
	if len(o.vectorDimensions) == 0 {
		return nil
	}
	t := awsdynamodb.NewTableV2(d.stack, jsii.String("Vectors"), &awsdynamodb.TablePropsV2{
		TableName:           jsii.String(unique(d.stack, o) + "vectors"),
		PartitionKey:        &awsdynamodb.Attribute{Name: jsii.String(layout.PK), Type: awsdynamodb.AttributeType_STRING},
		SortKey:             &awsdynamodb.Attribute{Name: jsii.String(layout.SK), Type: awsdynamodb.AttributeType_STRING},
		Billing:             awsdynamodb.Billing_OnDemand(nil),
		TimeToLiveAttribute: jsii.String(layout.Expires), RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
	})
	attributes := []any{}
	for _, name := range []string{layout.PK, layout.SK, layout.Tenant} {
		attributes = append(attributes, map[string]any{"AttributeName": name, "AttributeType": "S"})
	}
	indexes := []any{}
	for _, n := range o.vectorDimensions {
		indexes = append(indexes, map[string]any{
			"IndexName": fmt.Sprint(layout.Index, n), "Dimensions": n, "DistanceFunction": "COSINE",
			"VectorAttribute": map[string]any{"AttributeName": fmt.Sprint(layout.Vector, n)},
			"SearchSchema":    []any{map[string]any{"AttributeName": layout.Tenant, "SearchSchemaElementType": "HASH"}},
			"Projection":      map[string]any{"ProjectionType": "INCLUDE", "NonKeyAttributes": []any{layout.Expires}},
		})
	}
	raw := t.Node().DefaultChild().(awsdynamodb.CfnGlobalTable)
	raw.AddPropertyOverride(jsii.String("AttributeDefinitions"), attributes)
	raw.AddPropertyOverride(jsii.String("VectorIndexes"), indexes)
	cdknag.NagSuppressions_AddResourceSuppressions(t, &[]*cdknag.NagPackSuppression{{
		Id: jsii.String("AwsSolutions-DDB3"), Reason: jsii.String("Vectors of cached answers: what is lost is asked for again"),
	}}, jsii.Bool(true))
	return t
}

// onVectorTable are the rights on the table's items and its indexes.
func (d *dataStack) onVectorTable(allow allower) {
	if d.vectors == nil {
		return
	}
	allow(nil, []string{"dynamodb:PutItem"}, d.vectors.TableArn())
	allow(nil, []string{"dynamodb:SearchVectors"}, jsii.String(*d.vectors.TableArn()+"/index/"+layout.Index+"*"))
}

// vectorEnvironment sets the variables with the location of the table.
func (d *dataStack) vectorEnvironment(o options, env map[string]*string) {
	if d.vectors == nil {
		return
	}
	var list []string
	for _, n := range o.vectorDimensions {
		list = append(list, strconv.Itoa(n))
	}
	env["GATEWAY_VECTOR_TABLE"], env["GATEWAY_VECTOR_DIMENSIONS"] = d.vectors.TableArn(), jsii.String(strings.Join(list, ","))
}
