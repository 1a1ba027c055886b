package main

import (
	"maps"

	"github.com/aws/aws-cdk-go/awscdk/v2"
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
		Description: jsii.String("Asks for a look at batches that nobody goes on with"),
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
