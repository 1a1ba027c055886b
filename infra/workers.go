package main

import (
	"fmt"
	"maps"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsbudgets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdaeventsources"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogsdestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsscheduler"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsschedulertargets"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/placement"
)

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
