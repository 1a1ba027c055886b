package main

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/metric"
)

// watched is a condition that raises an alarm. runbook.md explains the meaning of each name and
// what to do.
type watched struct {
	name        string
	description string
	metric      awscloudwatch.IMetric
	threshold   float64
	periods     float64 // periods in a row for which it must hold
}

// queueNames are the queues of the data stack.
var queueNames = []string{"audit", "usage", "batches", "exports"}

// watch makes the alarms, the dashboard and the budget of an installation. An alarm's price
// depends on the metrics it looks at; ten are free for each account.
func (w *workerStack) watch(o options, d *dataStack, f *functionStack) {
	five := awscdk.Duration_Minutes(jsii.Number(5))
	own := func(name, statistic string) awscloudwatch.Metric {
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String(metric.Namespace), MetricName: jsii.String(name), Statistic: jsii.String(statistic), Period: five,
			DimensionsMap: &map[string]*string{"Installation": jsii.String(o.name)},
		})
	}
	lambda := func(name, statistic string) awscloudwatch.Metric { // of all functions of the account in this region
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{Namespace: jsii.String("AWS/Lambda"), MetricName: jsii.String(name), Statistic: jsii.String(statistic), Period: five})
	}
	api := func(name, statistic string) awscloudwatch.Metric {
		return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
			Namespace: jsii.String("AWS/ApiGateway"), MetricName: jsii.String(name), Statistic: jsii.String(statistic), Period: five,
			DimensionsMap: &map[string]*string{"ApiName": jsii.String(o.name), "Stage": jsii.String("v1")},
		})
	}
	depth, age := w.deadLetters(d)
	lag := awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: jsii.String("AWS/SQS"), MetricName: jsii.String("ApproximateAgeOfOldestMessage"), Statistic: jsii.String("Maximum"), Period: five,
		DimensionsMap: &map[string]*string{"QueueName": d.queues["usage"].QueueName()},
	})
	rate := awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String("IF(calls > 20, 100 * errors / calls, 0)"), Period: five, Label: jsii.String("5xx in percent"),
		UsingMetrics: &map[string]awscloudwatch.IMetric{"errors": api("5XXError", "Sum"), "calls": api("Count", "Sum")},
	})
	all := []watched{
		{"server-errors", "More than 5 % of the responses of the API were 5xx for ten minutes", rate, 5, 2},
		{"function-errors", "Functions ended with an error", lambda("Errors", "Sum"), 5, 1},
		{"throttles", "Functions were throttled by the concurrency limit of the account", lambda("Throttles", "Sum"), 0, 1},
		{"slow", "The gateway itself took more than half a second of one request in a hundred", own(metric.GatewayTime, "p99"), 500, 3},
		{"store-failures", "A store, queue or key service did not respond; requests with budgets are rejected meanwhile", own(metric.StoreFailures, "Sum"), 5, 1},
		{"usage-lag", "Usage events have waited for more than ten minutes", lag, 600, 1},
		{"dead-letters", "Messages that no worker could process are in a dead-letter queue", depth, 0, 1},
		{"dead-letters-old", "Messages in a dead-letter queue will expire in a few days", age, 7 * 24 * 3600, 1},
	}
	if f.container != nil {
		unhealthy := f.container.targets.Metrics().UnhealthyHostCount(&awscloudwatch.MetricOptions{Period: five, Statistic: jsii.String("Maximum")})
		all = append(all, watched{"container-unhealthy", "A task of the container does not respond", unhealthy, 0, 2})
	}
	for _, c := range all {
		w.alarm(o, c)
	}
	w.dashboard(o, all, []awscloudwatch.IMetric{own(metric.Requests, "Sum"), own(metric.Failures, "Sum"), own(metric.BypassedEdge, "Sum"), own(metric.LoggedErrors, "Sum")},
		[]awscloudwatch.IMetric{own(metric.GatewayTime, "p50"), own(metric.GatewayTime, "p99"), api("Latency", "p99")},
		[]awscloudwatch.IMetric{api("Count", "Sum"), api("4XXError", "Sum"), api("5XXError", "Sum"), lambda("ConcurrentExecutions", "Maximum")})
	budget(w.stack, o)
}

// deadLetters are how many messages wait in all queues of dead letters, and for how
// long.
func (w *workerStack) deadLetters(d *dataStack) (depth, age awscloudwatch.IMetric) {
	of := func(expression, name, label string) awscloudwatch.IMetric {
		using := map[string]awscloudwatch.IMetric{}
		add := func(id string, q awssqs.Queue) {
			using[id] = awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
				Namespace: jsii.String("AWS/SQS"), MetricName: jsii.String(name), Statistic: jsii.String("Maximum"),
				Period:        awscdk.Duration_Minutes(jsii.Number(5)),
				DimensionsMap: &map[string]*string{"QueueName": q.QueueName()},
			})
		}
		for _, q := range queueNames {
			add(q, d.dead[q])
		}
		add("tasks", w.dead)
		return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
			Expression: jsii.String(expression), UsingMetrics: &using, Label: jsii.String(label), Period: awscdk.Duration_Minutes(jsii.Number(5)),
		})
	}
	return of("FILL(audit,0)+FILL(usage,0)+FILL(batches,0)+FILL(exports,0)+FILL(tasks,0)", "ApproximateNumberOfMessagesVisible", "dead letters"),
		of("MAX([FILL(audit,0),FILL(usage,0),FILL(batches,0),FILL(exports,0),FILL(tasks,0)])", "ApproximateAgeOfOldestMessage", "oldest dead letter, seconds")
}

func (w *workerStack) alarm(o options, c watched) {
	alarm := awscloudwatch.NewAlarm(w.stack, jsii.String("Alarm-"+c.name), &awscloudwatch.AlarmProps{
		AlarmName:        jsii.String(o.name + "-" + c.name),
		AlarmDescription: jsii.String(c.description + ". What to do: functions/docs/guides/runbook.md, " + c.name),
		Metric:           c.metric, Threshold: jsii.Number(c.threshold), EvaluationPeriods: jsii.Number(c.periods),
		ComparisonOperator: awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD,
		TreatMissingData:   awscloudwatch.TreatMissingData_NOT_BREACHING,
	})
	if o.alarms != "" {
		topic := awssns.Topic_FromTopicArn(w.stack, jsii.String("Topic-"+c.name), jsii.String(o.alarms))
		alarm.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
		alarm.AddOkAction(awscloudwatchactions.NewSnsAction(topic))
	}
}

// dashboard shows on one page the metrics of the alarms, and how much work there is. Three
// dashboards are free for each account, with fifty metrics each.
func (w *workerStack) dashboard(o options, all []watched, rows ...[]awscloudwatch.IMetric) {
	if o.dashboard == "off" {
		return
	}
	page := awscloudwatch.NewDashboard(w.stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{DashboardName: jsii.String(o.name)})
	graph := func(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
		return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{Title: jsii.String(title), Left: &metrics, Width: jsii.Number(8), Height: jsii.Number(6)})
	}
	var widgets []awscloudwatch.IWidget
	for i, title := range []string{"Requests and failures", "Milliseconds", "API and concurrency"} {
		widgets = append(widgets, graph(title, rows[i]...))
	}
	page.AddWidgets(widgets...)
	for i := 0; i < len(all); i += 3 {
		var row []awscloudwatch.IWidget
		for _, c := range all[i:min(i+3, len(all))] {
			row = append(row, graph(c.name, c.metric))
		}
		page.AddWidgets(row...)
	}
}
