package simulate

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// noteCharges keeps, for each charge that a send of ours has just made, which card the customer had chosen by then.
func (s *schedule) noteCharges() {
	for _, c := range s.site.sim.Ledger().Charges {
		if _, noted := s.cards[c.ID]; noted || c.IdempotencyKey == "" {
			continue
		}
		s.cards[c.ID] = scalar[string](s, `SELECT coalesce((SELECT payment_method FROM payments WHERE provider_intent_id = $1), '')`, c.PaymentIntent)
	}
}

// last4 is how the provider shows the cards that can be charged. Cards of one behaviour differ by it.
func last4(method string) string {
	short := strings.TrimPrefix(method, "pm_card_")
	switch short {
	case "mastercard":
		return "4444"
	case "amex":
		return "8431"
	case "visa_debit":
		return "5556"
	case "chargeDeclined":
		return "0002"
	case "authenticationRequired":
		return "3184"
	case "threeDSecureRequiredChargeDeclined":
		return "8416"
	default:
		return "4242"
	}
}

// checkCards: a charge that we asked for was never made with a card that the customer had replaced by then (G3).
func (s *schedule) checkCards(b books) {
	shown := s.shownCards()
	for _, c := range b.ledger.Charges {
		chosen, ours := s.cards[c.ID]
		if c.Status == "failed" || !ours {
			continue
		}
		if got := shown[c.ID]; got != last4(chosen) {
			s.fail("G3", "charge %s was made with the card %s when the customer had chosen %s (%s)", c.ID, got, chosen, last4(chosen))
		}
	}
}

// shownCards asks the provider, over its API, for the card of each charge.
func (s *schedule) shownCards() map[string]string {
	request, err := http.NewRequestWithContext(s.ctx, http.MethodGet, s.site.sim.URL+"/v1/charges?limit=100", http.NoBody)
	if err != nil {
		s.broken(err)
	}
	request.Header.Set("Authorization", "Bearer "+apiKey.Reveal())
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.broken(fmt.Errorf("list the provider's charges: %w", err))
	}
	defer func() { _ = response.Body.Close() }()
	var list struct {
		Data []struct {
			ID      string `json:"id"`
			Details struct {
				Card struct {
					Last4 string `json:"last4"`
				} `json:"card"`
			} `json:"payment_method_details"`
		} `json:"data"`
	}
	if err := json.NewDecoder(response.Body).Decode(&list); err != nil {
		s.broken(fmt.Errorf("list the provider's charges: %w", err))
	}
	shown := map[string]string{}
	for _, c := range list.Data {
		shown[c.ID] = c.Details.Card.Last4
	}
	return shown
}
