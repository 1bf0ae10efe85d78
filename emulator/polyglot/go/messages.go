package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
)

// receive streams until count messages were acknowledged; take says whether one is.
func receive(ctx context.Context, client *pubsub.Client, name string, count int, take func(*pubsub.Message) bool) ([]*pubsub.Message, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mutex sync.Mutex
	var got []*pubsub.Message
	err := client.Subscriber(name).Receive(ctx, func(_ context.Context, message *pubsub.Message) {
		mutex.Lock()
		defer mutex.Unlock()
		if !take(message) {
			message.Nack()
			return
		}
		message.Ack()
		if got = append(got, message); len(got) == count {
			stop()
		}
	})
	if err == nil && len(got) < count {
		err = fmt.Errorf("%s: %d of %d messages within %s", name, len(got), count, limit)
	}
	return got, err
}

func messages(ctx context.Context) error {
	client, err := pubsub.NewClient(ctx, project)
	if err != nil {
		return err
	}
	defer client.Close()
	topic := "projects/" + project + "/topics/events"
	path := func(name string) string { return "projects/" + project + "/subscriptions/" + name }
	if _, err = client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: topic}); err != nil {
		return err
	}
	_, err = client.TopicAdminClient.CreateTopic(ctx, &pubsubpb.Topic{Name: topic})
	if err = refused("a topic is created once", codes.AlreadyExists, err); err != nil {
		return err
	}
	for _, each := range []*pubsubpb.Subscription{
		{Name: path("plain"), AckDeadlineSeconds: 10},
		{Name: path("ordered"), EnableMessageOrdering: true},
		{Name: path("filtered"), Filter: `attributes.kind = "even"`},
		{Name: path("exactly-once"), EnableExactlyOnceDelivery: true},
	} {
		each.Topic = topic
		if _, err = client.SubscriptionAdminClient.CreateSubscription(ctx, each); err != nil {
			return err
		}
	}

	publisher := client.Publisher(topic)
	publisher.EnableMessageOrdering = true
	var results []*pubsub.PublishResult
	for n := range 300 {
		results = append(results, publisher.Publish(ctx, &pubsub.Message{
			Data:        []byte(strconv.Itoa(n)),
			OrderingKey: fmt.Sprintf("key-%d", n%3),
			Attributes:  map[string]string{"kind": []string{"even", "odd"}[n%2]},
		}))
	}
	ids := map[string]bool{}
	for _, result := range results {
		id, err := result.Get(ctx)
		if err != nil {
			return err
		}
		ids[id] = true
	}
	if err = holds("300 messages have 300 IDs", len(ids) == 300, len(ids)); err != nil {
		return err
	}

	nacked := map[string]bool{}
	arrived, err := receive(ctx, client, path("plain"), 300, func(message *pubsub.Message) bool {
		n, _ := strconv.Atoi(string(message.Data))
		first := n%50 == 0 && !nacked[message.ID]
		nacked[message.ID] = nacked[message.ID] || first
		return !first
	})
	if err != nil {
		return err
	}
	for _, message := range arrived {
		delete(ids, message.ID)
	}
	if err = holds("each message arrives, those that were nacked once too", len(ids) == 0, len(ids)); err != nil {
		return err
	}

	all := func(*pubsub.Message) bool { return true }
	keyed := map[string][]int{}
	arrived, err = receive(ctx, client, path("ordered"), 300, all)
	if err != nil {
		return err
	}
	inOrder := true
	for _, message := range arrived {
		n, _ := strconv.Atoi(string(message.Data))
		keyed[message.OrderingKey] = append(keyed[message.OrderingKey], n)
	}
	for _, numbers := range keyed {
		inOrder = inOrder && slices.IsSorted(numbers)
	}
	if err = holds("each ordering key is in order", inOrder && len(keyed) == 3, keyed); err != nil {
		return err
	}

	arrived, err = receive(ctx, client, path("filtered"), 150, all)
	if err != nil {
		return err
	}
	others := slices.ContainsFunc(arrived, func(message *pubsub.Message) bool { return message.Attributes["kind"] != "even" })
	if err = holds("a filter lets only its own through", !others, others); err != nil {
		return err
	}

	if err = confirmed(ctx, client, path("exactly-once"), 300); err != nil {
		return err
	}
	_, err = publisher.Publish(ctx, &pubsub.Message{Data: []byte("x"), Attributes: map[string]string{"googclient": "x"}}).Get(ctx)
	return refused("the reserved prefix goog is refused", codes.InvalidArgument, err)
}

func confirmed(ctx context.Context, client *pubsub.Client, name string, count int) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var mutex sync.Mutex
	done := 0
	var failed error
	err := client.Subscriber(name).Receive(ctx, func(_ context.Context, message *pubsub.Message) {
		result, err := message.AckWithResult().Get(context.Background())
		mutex.Lock()
		defer mutex.Unlock()
		if done++; err != nil || result != pubsub.AcknowledgeStatusSuccess {
			failed = fmt.Errorf("acknowledgement: %v %w", result, err)
		}
		if done == count {
			stop()
		}
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return err
	}
	return holds("exactly-once acknowledgements are confirmed", done == count, done)
}
