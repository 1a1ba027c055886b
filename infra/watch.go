package main

import (
	"fmt"
	"maps"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsbudgets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogsdestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsschedulertargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/metric"
	"gateway/shared/host/placement"
)

// watched is a condition that raises an alarm. RUNBOOK.md explains the meaning of each name and
// what to do.
type watched struct {
	name    string
	says    string
	of      awscloudwatch.IMetric
	above   float64
	periods float64 // periods in a row for which it must hold
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
		AlarmDescription: jsii.String(c.says + ". What to do: functions/docs/guides/runbook.md, " + c.name),
		Metric:           c.of, Threshold: jsii.Number(c.above), EvaluationPeriods: jsii.Number(c.periods),
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
			row = append(row, graph(c.name, c.of))
		}
		page.AddWidgets(row...)
	}
}

// budget warns when the month's costs of the installation exceed the planned amount, and
// when they are forecast to. It counts resources with the installation's tag, which has to
// be activated once as a cost allocation tag.
func budget(stack awscdk.Stack, o options) {
	if o.budget == 0 {
		return
	}
	var subscribers []any
	if o.alarms != "" {
		subscribers = append(subscribers, &awsbudgets.CfnBudget_SubscriberProperty{SubscriptionType: jsii.String("SNS"), Address: jsii.String(o.alarms)})
	}
	var notices []any
	for _, kind := range []string{"ACTUAL", "FORECASTED"} {
		if len(subscribers) > 0 {
			notices = append(notices, &awsbudgets.CfnBudget_NotificationWithSubscribersProperty{
				Notification: &awsbudgets.CfnBudget_NotificationProperty{
					NotificationType: jsii.String(kind), ComparisonOperator: jsii.String("GREATER_THAN"), Threshold: jsii.Number(100), ThresholdType: jsii.String("PERCENTAGE"),
				},
				Subscribers: subscribers,
			})
		}
	}
	awsbudgets.NewCfnBudget(stack, jsii.String("Budget"), &awsbudgets.CfnBudgetProps{
		Budget: &awsbudgets.CfnBudget_BudgetDataProperty{
			BudgetName: jsii.String(o.name + "-spend"), BudgetType: jsii.String("COST"), TimeUnit: jsii.String("MONTHLY"),
			BudgetLimit: &awsbudgets.CfnBudget_SpendProperty{Amount: jsii.Number(o.budget), Unit: jsii.String("USD")},
			CostFilters: map[string]any{"TagKeyValue": []string{fmt.Sprintf("user:%s$%s", installationTag, o.name)}},
		},
		NotificationsWithSubscribers: notices,
	})
}

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

// batches are how queues feed their workers.
var batches = map[string]struct {
	queue                     string
	size, window, concurrency float64
}{
	"usage":     {"usage", 2000, 0, 2}, // the window is a context value
	"audit":     {"audit", 100, auditWindow, 2},
	"batchruns": {"batches", 1, 0, 18},
	"exports":   {"exports", 1, 0, 4},
}

// unwaited is how many messages Lambda takes at once where it waits for no more.
const unwaited = 10

// schedules are the tasks of the repair worker and how often they run. Records in the outbox
// and steps of batches normally go to their queues immediately; the schedules are a safety net
// for work left by a process that died.
var schedules = map[string]awsscheduler.ScheduleExpression{
	"outbox":  awsscheduler.ScheduleExpression_Rate(awscdk.Duration_Minutes(jsii.Number(15))),
	"keys":    awsscheduler.ScheduleExpression_Rate(awscdk.Duration_Minutes(jsii.Number(5))),
	"notices": awsscheduler.ScheduleExpression_Rate(awscdk.Duration_Minutes(jsii.Number(3))),
	"compact": awsscheduler.ScheduleExpression_Rate(awscdk.Duration_Minutes(jsii.Number(5))),
	"retain":  awsscheduler.ScheduleExpression_Rate(awscdk.Duration_Hours(jsii.Number(6))),
	"vectors": awsscheduler.ScheduleExpression_Rate(awscdk.Duration_Days(jsii.Number(1))),
	"budgets": awsscheduler.ScheduleExpression_Rate(awscdk.Duration_Days(jsii.Number(1))),
	"origin":  awsscheduler.ScheduleExpression_Rate(awscdk.Duration_Hours(jsii.Number(1))), // one step of a rotation
}

// workerStack does the work that no caller waits for.
type workerStack struct {
	stack     awscdk.Stack
	functions map[string]awslambda.Function
	live      map[string]awslambda.Alias // the aliases that are invoked
	dead      awssqs.Queue               // events of scheduled tasks that failed
}

func newWorkerStack(scope constructs.Construct, props *awscdk.StackProps, o options, d *dataStack, f *functionStack) *workerStack {
	w := &workerStack{stack: awscdk.NewStack(scope, jsii.String("Workers"), props), functions: map[string]awslambda.Function{}, live: map[string]awslambda.Alias{}}
	w.stack.AddDependency(f.stack, jsii.String("The logs must be there before they are read"))
	for _, name := range workerNames {
		extra := map[string]*string(nil)
		var lent []awsiam.PolicyStatement
		switch name {
		case "repair":
			extra = d.rotationEnvironment(o)
			maps.Copy(extra, o.outward()) // it calls webhooks
		case "usage":
			extra = o.outward() // it calls destinations of telemetry
		case "batchruns": // it calls providers
			extra = o.outward()
			o.lend(w.stack, extra, func(s awsiam.PolicyStatement) { lent = append(lent, s) })
		}
		w.functions[name] = newFunction(w.stack, d, o, name, workerShapes[name], rightsOf(name, ""), extra, lent...)
		w.live[name] = live(w.stack, name, w.functions[name])
	}
	d.grantRotation(o, w.functions["repair"])
	for _, name := range []string{"usage", "audit", "batchruns", "exports"} {
		b := batches[name]
		if name == "usage" {
			b.window = o.window
			if b.window == 0 {
				b.size = unwaited
			}
		}
		w.live[name].AddEventSource(awslambdaeventsources.NewSqsEventSource(d.queues[b.queue], &awslambdaeventsources.SqsEventSourceProps{
			BatchSize: jsii.Number(b.size), MaxBatchingWindow: awscdk.Duration_Seconds(jsii.Number(b.window)),
			ReportBatchItemFailures: jsii.Bool(true), MaxConcurrency: jsii.Number(b.concurrency),
		}))
	}
	newSetupOutputs(w.stack, w.functions["repair"])
	w.requeueLostEvents(o)
	w.dead = awssqs.NewQueue(w.stack, jsii.String("Dead-tasks"), &awssqs.QueueProps{
		QueueName: jsii.String(unique(w.stack, o) + "tasks-dead"), Encryption: awssqs.QueueEncryption_SQS_MANAGED, EnforceSSL: jsii.Bool(true),
		RetentionPeriod: awscdk.Duration_Seconds(jsii.Number(retentionSeconds)),
	})
	w.watch(o, d, f)
	for _, task := range []string{"outbox", "keys", "notices", "compact", "retain", "vectors", "budgets", "origin"} {
		awsscheduler.NewSchedule(w.stack, jsii.String("Schedule-"+task), &awsscheduler.ScheduleProps{
			Schedule: schedules[task], Description: jsii.String("Task " + task + " of the repair worker"),
			Target: awsschedulertargets.NewLambdaInvoke(w.live["repair"], &awsschedulertargets.ScheduleTargetBaseProps{
				Input:         awsscheduler.ScheduleTargetInput_FromObject(map[string]any{"task": task}),
				RetryAttempts: jsii.Number(2), MaxEventAge: awscdk.Duration_Hours(jsii.Number(1)), DeadLetterQueue: w.dead,
			}),
		})
	}
	awsscheduler.NewSchedule(w.stack, jsii.String("Schedule-sweep"), &awsscheduler.ScheduleProps{
		Schedule:    awsscheduler.ScheduleExpression_Rate(awscdk.Duration_Minutes(jsii.Number(15))),
		Description: jsii.String("Resumes batches that no worker is processing"),
		Target: awsschedulertargets.NewSqsSendMessage(d.queues["batches"], &awsschedulertargets.SqsSendMessageProps{
			Input:         awsscheduler.ScheduleTargetInput_FromObject(map[string]any{"sweep": true}),
			RetryAttempts: jsii.Number(2), MaxEventAge: awscdk.Duration_Hours(jsii.Number(1)), DeadLetterQueue: w.dead,
		}),
	})
	return w
}

// requeueLostEvents has the log lines that carry a usage event read again. The pattern is
// the message that the data plane writes.
func (w *workerStack) requeueLostEvents(o options) {
	names, places := placement.Families()
	for _, name := range append(names, "batchruns") {
		if places[name] != placement.Stream && name != "batchruns" {
			continue
		}
		group := awslogs.LogGroup_FromLogGroupName(w.stack, jsii.String("LogsOf-"+name), jsii.String("/"+o.name+"/"+name))
		awslogs.NewSubscriptionFilter(w.stack, jsii.String("Lost-"+name), &awslogs.SubscriptionFilterProps{
			LogGroup: group, Destination: awslogsdestinations.NewLambdaDestination(w.live["requeue"], nil),
			FilterPattern: awslogs.FilterPattern_StringValue(jsii.String("$.message"), jsii.String("="), jsii.String("usage event is not queued")),
		})
	}
}
