package main

import (
	"strconv"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsathena"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsglue"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/usage/segment/columns"
)

// queried is the prefix of the bucket below which Athena writes the results of queries.
const queried = "queries/"

// usageTable is the table of the files of usage in the installation's database.
const usageTable = "requests"

// setQueryLimit reads how much one query may read.
func setQueryLimit(o *options, v string) bool {
	if v == "off" {
		return true
	}
	n, err := strconv.Atoi(v)
	o.queryLimit = float64(n)
	return err == nil && n >= 1 && n <= 100_000
}

// setQueryHourly reads how much the queries of the function analytics may read in an hour
// for one organisation.
func setQueryHourly(o *options, v string) bool {
	n, err := strconv.Atoi(v)
	o.queryHourly = n
	return err == nil && n >= 0 && n <= 1_000_000
}

// queries is the location of the usage files for SQL queries; nil if disabled.
type queries struct {
	workgroup, database string
	hourly              int // GB; 0: no bound
}

// newQueries defines the table of the files in the Glue catalog, and the workgroup in which
// users and the function analytics query Athena. Athena computes the partitions from the query,
// so that none have to be registered; for this a query must name the organization.
func (d *dataStack) newQueries(o options) *queries {
	if o.queryLimit == 0 {
		return nil
	}
	q := &queries{workgroup: o.name, database: strings.ReplaceAll(o.name, "-", "_") + "_usage", hourly: o.queryHourly}
	database := awsglue.NewCfnDatabase(d.stack, jsii.String("UsageDatabase"), &awsglue.CfnDatabaseProps{
		CatalogId:     d.stack.Account(),
		DatabaseInput: &awsglue.CfnDatabase_DatabaseInputProperty{Name: jsii.String(q.database), Description: jsii.String("Usage of the AI gateway " + o.name)},
	})
	column := func(name, kind string) *awsglue.CfnTable_ColumnProperty {
		return &awsglue.CfnTable_ColumnProperty{Name: jsii.String(name), Type: jsii.String(kind)}
	}
	all := []any{}
	for _, c := range columns.All {
		all = append(all, column(c.Name, c.Type))
	}
	place := "s3://" + *d.bucket.BucketName() + "/" + columns.Prefix
	table := awsglue.NewCfnTable(d.stack, jsii.String("UsageTable"), &awsglue.CfnTableProps{
		CatalogId: d.stack.Account(), DatabaseName: jsii.String(q.database),
		TableInput: &awsglue.CfnTable_TableInputProperty{
			Name: jsii.String(usageTable), TableType: jsii.String("EXTERNAL_TABLE"), Description: jsii.String("One row per request; take each id once"),
			PartitionKeys: []any{column(columns.Org, "string"), column(columns.Day, "string")},
			StorageDescriptor: &awsglue.CfnTable_StorageDescriptorProperty{
				Columns: all, Location: jsii.String(place),
				InputFormat:  jsii.String("org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat"),
				OutputFormat: jsii.String("org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat"),
				SerdeInfo:    &awsglue.CfnTable_SerdeInfoProperty{SerializationLibrary: jsii.String("org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe")},
			},
			Parameters: map[string]any{
				"EXTERNAL": "TRUE", "classification": "parquet", "projection.enabled": "true",
				"projection." + columns.Org + ".type": "injected",
				"projection." + columns.Day + ".type": "date", "projection." + columns.Day + ".format": columns.Layout,
				"projection." + columns.Day + ".range": columns.First + ",NOW", "projection." + columns.Day + ".interval": "1", "projection." + columns.Day + ".interval.unit": "DAYS",
				"storage.location.template": place + "${" + columns.Org + "}/${" + columns.Day + "}/",
			},
		},
	})
	table.AddDependency(database)
	group := awsathena.NewCfnWorkGroup(d.stack, jsii.String("UsageWorkgroup"), &awsathena.CfnWorkGroupProps{
		Name: jsii.String(q.workgroup), Description: jsii.String("Queries of usage of the AI gateway " + o.name), RecursiveDeleteOption: jsii.Bool(true),
		WorkGroupConfiguration: &awsathena.CfnWorkGroup_WorkGroupConfigurationProperty{
			EnforceWorkGroupConfiguration: jsii.Bool(true), PublishCloudWatchMetricsEnabled: jsii.Bool(true),
			BytesScannedCutoffPerQuery: jsii.Number(o.queryLimit * 1e9),
			EngineVersion:              &awsathena.CfnWorkGroup_EngineVersionProperty{SelectedEngineVersion: jsii.String("Athena engine version 3")},
			ResultConfiguration: &awsathena.CfnWorkGroup_ResultConfigurationProperty{
				OutputLocation:          jsii.String("s3://" + *d.bucket.BucketName() + "/" + queried),
				EncryptionConfiguration: &awsathena.CfnWorkGroup_EncryptionConfigurationProperty{EncryptionOption: jsii.String("SSE_S3")},
			},
		},
	})
	awscdk.NewCfnOutput(d.stack, jsii.String("UsageQueries"), &awscdk.CfnOutputProps{
		Value: jsii.String(q.database + "." + usageTable), Description: jsii.String("Table of the requests, in the workgroup " + q.workgroup + " of Athena"),
	})
	group.AddDependency(database)
	return q
}

// onQueries are the rights to ask Athena, and the rights that Athena uses in the caller's
// name: it reads the files, and writes and reads the results.
func (d *dataStack) onQueries(allow allower) {
	if d.queries == nil {
		return
	}
	arn := func(service, resource, name string) *string {
		return d.stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String(service), Resource: jsii.String(resource), ResourceName: jsii.String(name)})
	}
	allow(nil, []string{"athena:StartQueryExecution", "athena:GetQueryExecution", "athena:GetQueryResults"}, arn("athena", "workgroup", d.queries.workgroup))
	allow(nil, []string{"glue:GetDatabase", "glue:GetTable", "glue:GetPartitions"},
		d.stack.FormatArn(&awscdk.ArnComponents{Service: jsii.String("glue"), Resource: jsii.String("catalog")}),
		arn("glue", "database", d.queries.database), arn("glue", "table", d.queries.database+"/"+usageTable))
	allow(nil, []string{"s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"}, d.bucket.ArnForObjects(jsii.String(queried+"*")))
	allow(condition{"StringLike": {"s3:prefix": []string{columns.Prefix + "*", queried + "*"}}}, []string{"s3:ListBucket"}, d.bucket.BucketArn())
	allow(nil, []string{"s3:GetBucketLocation"}, d.bucket.BucketArn())
}

// queryEnvironment sets the variables with the location of the table.
func (d *dataStack) queryEnvironment(env map[string]*string) {
	if d.queries == nil {
		return
	}
	env["GATEWAY_ATHENA_WORKGROUP"], env["GATEWAY_ATHENA_DATABASE"], env["GATEWAY_ATHENA_TABLE"] = jsii.String(d.queries.workgroup), jsii.String(d.queries.database), jsii.String(usageTable)
	env["GATEWAY_ATHENA_HOURLY_GB"] = jsii.String(strconv.Itoa(d.queries.hourly))
}
