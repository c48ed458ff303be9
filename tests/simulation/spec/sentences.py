"""Every sentence of the requirement on lending that says what happens, and the tests that hold it.

The paragraphs are those of the text from "Backlog lending" to "LLM lending", in its order; sentences are quoted as far as it
takes to find them. `test_every_sentence_has_its_test` holds that the tests exist and that none of this folder is missing.
What no test can hold yet stands in `OPEN` with the reason.
"""

from typing import Final

Sentence = tuple[str, tuple[str, ...]]
"""(words of the text, tests as `FILE::NAME`)."""

FILES: Final = {
    "backlog": "simulation/spec/test_backlog_lending.py",
    "lent": "simulation/spec/test_what_is_lent.py",
    "ten": "simulation/test_ten_requests_for_one_model.py",
    "decides": "simulation/spec/test_who_decides.py",
    "pricing": "simulation/spec/test_pricing.py",
    "probes": "simulation/spec/test_probes.py",
    "hold": "simulation/spec/test_holding_a_request.py",
    "example-a": "simulation/test_worked_example_a.py",
    "example-b": "simulation/test_worked_example_b.py",
    "own": "simulation/spec/test_a_helpers_own_work.py",
    "log": "simulation/spec/test_decision_log.py",
    "loading": "simulation/spec/test_loading_and_reloading.py",
    "linking": "simulation/spec/test_linking_models.py",
    "llm": "simulation/spec/test_llm_lending.py",
    "http": "http/lending/spec/test_what_the_text_says_over_http.py",
    "http-links": "http/lending/test_links_reach_every_router.py",
    "http-lent": "http/lending/test_waiting_requests_are_answered_by_the_helper.py",
    "http-back": "http/lending/test_what_comes_back_is_served_by_its_owner.py",
    "http-log": "http/lending/test_the_decision_log_is_asked_over_all_nodes.py",
    "store": "unit/store/test_decision_log.py",
    "folding": "unit/reporting/test_repeated_decisions_are_folded.py",
}
"""Under `tests/`."""

SENTENCES: Final[dict[str, tuple[Sentence, ...]]] = {
    "Backlog lending": (
        (
            "Routing links let an operator declare that one model may lend queued work to a model on another node.",
            (
                "backlog::test_a_link_lets_one_model_lend_queued_work_to_a_model_on_another_node",
                "linking::test_a_link_is_between_two_nodes",
            ),
        ),
        (
            "A link is one-way: the owner lends, the helper borrows.",
            ("backlog::test_a_link_is_one_way_the_owner_lends_and_the_helper_borrows",),
        ),
        (
            "The reverse direction is a separate link and is never implied.",
            ("backlog::test_the_reverse_direction_is_a_separate_link_and_is_never_implied",),
        ),
        (
            "Links are chosen by hand … the two models are not required to share a name, a config hash, or a checkpoint.",
            (
                "linking::test_links_are_chosen_by_hand",
                "linking::test_the_two_models_need_not_share_a_name_a_config_hash_or_a_checkpoint",
            ),
        ),
        (
            "The common case is one checkpoint that two nodes configured differently.",
            ("linking::test_the_common_case_is_one_checkpoint_that_two_nodes_configured_differently",),
        ),
        ("A model that is only a helper never lends.", ("backlog::test_a_model_that_is_only_a_helper_never_lends",)),
        (
            "Its own requests are never withdrawn or reported to the master, and a lease that names it as owner is refused …",
            (
                "backlog::test_its_own_requests_are_not_reported_and_a_lease_that_names_it_as_owner_is_refused",
                "log::test_dispatch_rows_say_that_a_lease_was_refused",
            ),
        ),
        (
            "Its own requests still run through the router queue, so that its own work always goes ahead of borrowed work.",
            ("backlog::test_its_own_requests_run_through_the_router_queue_and_go_ahead_of_borrowed_work",),
        ),
        (
            "Image models and LLM models are linked separately …",
            ("backlog::test_image_models_and_llm_models_are_linked_separately",),
        ),
        (
            "Both lanes use the same lending rules below.",
            ("backlog::test_both_lanes_use_the_same_lending_rules",),
        ),
        (
            "Each lane keeps its own cost model.",
            (
                "backlog::test_each_lane_keeps_its_own_cost_model",
                "backlog::test_a_model_that_is_linked_in_both_lanes_lends_in_both_and_prices_each_by_its_own_costs",
            ),
        ),
    ),
    "A request goes to the model it names": (
        (
            "Links never change where a request is routed.",
            ("lent::test_links_never_change_where_a_request_is_routed",),
        ),
        (
            "A request for cc11-ff is served by the node or nodes that hold cc11-ff, and replicas … keep their usual rotation.",
            ("http::test_a_request_is_served_by_the_nodes_that_hold_its_model_and_replicas_keep_their_usual_rotation",),
        ),
        (
            "A faster linked model on another node does not attract the request.",
            ("lent::test_a_faster_linked_model_on_another_node_does_not_attract_the_request",),
        ),
        (
            "To spread one ID across nodes, give the configs the same name instead.",
            ("http::test_to_spread_one_id_across_nodes_give_the_configs_the_same_name_instead",),
        ),
    ),
    "What is lent": (
        (
            "A model that is an owner or a helper in any link is enrolled, and its requests are queued inside the router …",
            ("lent::test_the_requests_of_an_owner_or_helper_in_any_link_are_queued_inside_the_router",),
        ),
        (
            "Only cluster.scheduling_backend_depth requests reach the backend at once.",
            ("lent::test_only_the_depth_of_requests_reaches_the_backend_at_once",),
        ),
        ("This is the intended flow, with the default depth of 2.", ("lent::test_the_default_depth_is_2",)),
        (
            "1. 2 go straight to A's backend: one generating, one waiting inside the backend, so A never idles between jobs.",
            (
                "ten::test_two_go_straight_to_the_backend_and_eight_are_held_and_judged_at_once",
                "lent::test_two_go_straight_to_the_backend_one_generating_and_one_waiting_inside_it_so_that_the_owner_never_idles",
            ),
        ),
        (
            "2. The other 8 are held in the router and judged for lending at once.",
            (
                "ten::test_two_go_straight_to_the_backend_and_eight_are_held_and_judged_at_once",
                "ten::test_ten_requests_at_once_cost_one_event",
            ),
        ),
        (
            "3. A helper that pays off gets 2 of them in flight when its predicted time … is at most the owner's, otherwise 1.",
            ("ten::test_a_helper_that_is_as_fast_gets_two_in_flight_and_a_slower_one_gets_one",),
        ),
        (
            "4. The rest stay held. A is always topped back up to 2 from the held requests.",
            ("ten::test_the_owner_is_always_topped_back_up_to_two_from_the_held_requests",),
        ),
        (
            "5. Every result that comes back, from A or from the helper, triggers the next decision …",
            ("ten::test_every_result_that_comes_back_gives_the_helper_more_while_it_pays",),
        ),
        ("Only held requests can be lent.", ("lent::test_only_held_requests_can_be_lent",)),
        ("The two in A's pipe never move.", ("ten::test_the_two_in_the_pipe_never_move",)),
        (
            "The node that first received the requests owns them and keeps the client connections for their whole life.",
            (
                "http-lent::test_each_is_answered_once_under_its_public_name",
                "http-back::test_a_helper_that_is_stopped_in_the_middle",
            ),
        ),
        (
            "It lends surplus backlog; it never transfers custody.",
            ("lent::test_it_lends_surplus_backlog_and_never_transfers_custody",),
        ),
    ),
    "Who decides": (
        ("The master decides; the owner executes.", ("decides::test_the_master_decides_and_the_owner_executes",)),
        (
            "The master pushes the current links to every slave.",
            ("http-links::test_a_slave_works_with_the_links_that_name_it_and_with_the_masters_settings",),
        ),
        (
            "An owner reports every queue event of a linked model to the master …: each new held request and each finished job …",
            ("decides::test_an_owner_reports_each_new_held_request_and_each_finished_job_its_own_or_a_lent_one",),
        ),
        (
            "Events for the same model are coalesced, so a burst costs at most one decision in flight and one … behind it.",
            ("decides::test_a_burst_costs_at_most_one_decision_in_flight_and_one_queued_behind_it",),
        ),
        (
            "On every event, and on a cluster.scheduling_refresh_interval tick as a fallback, the master polls every node …",
            (
                "decides::test_on_every_event_the_master_polls_the_nodes",
                "decides::test_on_a_tick_as_a_fallback_the_master_polls_the_nodes_and_decides",
                "decides::test_a_poll_says_the_queue_whether_it_accepts_how_long_it_has_been_idle_and_its_coefficients",
            ),
        ),
        (
            "For each owner with held work it considers only the helpers that owner links to, and answers with a lease … or with no lease.",
            (
                "decides::test_it_considers_only_the_helpers_that_the_owner_links_to_and_answers_with_a_lease",
                "decides::test_or_with_no_lease",
            ),
        ),
        (
            "The owner lends held requests up to the lease's slot count and stops when the answer is no lease.",
            ("decides::test_the_owner_lends_up_to_the_slot_count_and_stops_when_the_answer_is_no_lease",),
        ),
        (
            "A request already lent is never recalled.",
            ("decides::test_a_request_already_lent_is_never_recalled",),
        ),
        (
            "The master rewrites each lent request to the helper's own model ID.",
            (
                "decides::test_each_lent_request_is_rewritten_to_the_helpers_own_model_id",
                "http::test_the_master_rewrites_each_lent_request_to_the_helpers_own_model_id",
            ),
        ),
        (
            "A lease carries its lifetime (ttl_ms), and the owner times it on its own clock, so clock skew … does not end a lease early.",
            ("decides::test_the_owner_times_a_lease_on_its_own_clock_so_clock_skew_does_not_end_it_early",),
        ),
        (
            "When the helper is the master itself, the master serves the lent request in-process and needs no cluster.public_url …",
            (
                "decides::test_when_the_helper_is_the_master_itself_it_serves_the_lent_request",
                "http::test_the_master_serves_what_is_lent_to_it_in_process_and_needs_no_public_url_for_it",
            ),
        ),
        (
            "The master writes a relay_refused row for every lent request it cannot pass on …",
            ("decides::test_the_master_writes_a_relay_refused_row_for_every_lent_request_it_cannot_pass_on",),
        ),
        ("The owner then runs the request itself.", ("decides::test_the_owner_then_runs_the_request_itself",)),
    ),
    "Pricing": (
        (
            "The master compares what the owner needs to drain its backlog alone against what the helper needs …, model load included.",
            (
                "pricing::test_the_master_compares_the_drain_of_the_owner_alone_with_the_first_job_of_the_helper_load_included",
                "example-a::test_at_20_the_lease_stays_with_half_the_load_done",
            ),
        ),
        (
            "A load is paid once and amortises …, which is why a deep backlog justifies a switch that a shallow one does not.",
            (
                "pricing::test_a_load_is_paid_once_and_amortises_over_every_job_that_then_flows_through_the_slot",
                "pricing::test_a_deep_backlog_justifies_a_switch_that_a_shallow_one_does_not",
            ),
        ),
        (
            "A model has its own cost fit once it has cluster.scheduling_min_samples measured requests inside …",
            ("pricing::test_a_model_has_its_own_cost_fit_once_it_has_enough_measured_requests_inside_the_window",),
        ),
        (
            "When the requests vary in size, the fit scales with the work.",
            ("pricing::test_when_the_requests_vary_in_size_the_fit_scales_with_the_work",),
        ),
        (
            "When every request did the same work …, the model is priced at its mean duration for that work only …",
            ("pricing::test_when_every_request_did_the_same_work_the_model_is_priced_at_its_mean_for_that_work_only",),
        ),
        (
            "A helper with no fit of its own is priced with the owner's fit …, and switches to its own as soon as it has one.",
            (
                "pricing::test_a_helper_with_no_fit_is_priced_with_the_owners_and_switches_to_its_own_as_soon_as_it_has_one",
            ),
        ),
        (
            "Every successful load counts as load-cost data, including loads that were never followed by a generation …",
            ("pricing::test_every_load_counts_as_load_cost_data_including_one_never_followed_by_a_generation",),
        ),
        (
            "A helper whose model is not loaded has to push out whatever it holds.",
            ("pricing::test_a_helper_whose_model_is_not_loaded_has_to_push_out_whatever_it_holds",),
        ),
        (
            "The price of a lease then includes loading that displaced model again …",
            (
                "pricing::test_a_helper_is_not_displaced_when_getting_its_own_model_back_costs_more_than_the_owner_saves",
            ),
        ),
        (
            "If the displaced model has no measured load time, the helper is skipped (restore_unpriced).",
            ("pricing::test_if_the_displaced_model_has_no_measured_load_time_the_helper_is_skipped",),
        ),
        (
            "A helper that served its own request more recently than the switch and the way back would take is skipped too …",
            (
                "pricing::test_a_helper_that_served_its_own_request_more_recently_than_the_switch_and_the_way_back_take_is_skipped",
                "example-a::test_idle_for_59_seconds_the_helper_was_recently_busy_and_a_probe_falls_due_a_second_later",
            ),
        ),
    ),
    "Probes": (
        (
            "A helper that the cost rule does not choose still gets a one-request probe once it has been idle for … (default 5s).",
            (
                "probes::test_a_helper_that_the_cost_rule_does_not_choose_gets_a_one_request_probe_once_it_has_been_idle_for_5_s",
                "probes::test_the_default_of_the_probes_idle_time_is_5_s",
            ),
        ),
        (
            "A helper that would have to switch models waits twelve times as long …",
            (
                "probes::test_a_helper_that_would_have_to_switch_models_waits_twelve_times_as_long",
                "example-a::test_idle_for_longer_the_helper_gets_a_probe_and_then_a_lease",
            ),
        ),
        (
            "This applies as long as it is accepting borrowed work, its link allows it …, and, for text, its context window holds the work.",
            (
                "probes::test_a_probe_goes_only_where_borrowed_work_is_accepted_the_link_allows_it_and_the_window_holds_it",
            ),
        ),
        (
            "Probes happen even when the owner is faster or neither side is priced yet, so every linked pair gradually gathers …",
            (
                "probes::test_probes_happen_even_when_the_owner_is_faster_or_neither_side_is_priced",
                "probes::test_so_every_linked_pair_gradually_gathers_the_samples_its_own_fit_needs",
            ),
        ),
        (
            "Idle here means idle from the helper's own work …, while borrowed work does not, so a helper … is probed again …",
            (
                "probes::test_idle_means_idle_from_its_own_requests_and_loads",
                "probes::test_a_restore_after_borrowing_counts_as_busy",
                "probes::test_borrowed_work_does_not_count_as_busy_so_a_helper_is_probed_again_without_waiting_a_second_time",
            ),
        ),
        (
            "When a probe is held back only because the helper has not idled long enough yet, the master decides again the moment it has …",
            (
                "probes::test_when_a_probe_is_held_back_only_by_the_idle_time_the_master_decides_again_the_moment_it_is_over",
            ),
        ),
    ),
    "Holding a request for a faster helper": (
        (
            "With cluster.offload_hold_for_faster_helper on (the default), an owner … does not always fill the second backend slot …",
            (
                "hold::test_with_the_default_on_an_owner_that_is_generating_does_not_always_fill_the_second_slot",
                "example-b::test_with_the_setting_off_nothing_is_held",
            ),
        ),
        (
            "If a lease is live, every lent slot is busy, and the helper is predicted to finish that request sooner …",
            (
                "hold::test_a_request_waits_when_the_helper_is_predicted_to_finish_it_sooner",
                "hold::test_and_goes_to_the_helper_on_the_masters_next_answer",
                "hold::test_it_does_not_wait_when_the_owner_is_predicted_to_finish_it_sooner",
                "hold::test_it_does_not_wait_while_a_lent_slot_is_free",
                "example-b::test_r_is_held_while_the_helper_would_finish_it_sooner",
                "example-b::test_r_is_lent_when_the_first_comes_back_and_ends_at_11",
            ),
        ),
        (
            "This only applies to the second slot: the owner never stops generating because of it.",
            (
                "hold::test_the_owner_never_stops_generating_because_of_it_and_takes_the_request_when_it_would_be_idle",
                "example-b::test_with_a_silent_helper_r_goes_to_the_owner_at_8_when_it_would_idle",
            ),
        ),
        (
            "The request goes to the owner as soon as the owner would otherwise be idle, the master clears the lease, or the setting …",
            (
                "hold::test_the_owner_never_stops_generating_because_of_it_and_takes_the_request_when_it_would_be_idle",
                "hold::test_the_request_goes_to_the_owner_as_soon_as_the_master_clears_the_lease",
                "hold::test_the_request_goes_to_the_owner_as_soon_as_the_setting_is_switched_off",
            ),
        ),
        (
            "Probe leases and leases without measured speeds on both sides never hold.",
            (
                "hold::test_probe_leases_never_hold",
                "hold::test_leases_without_measured_speeds_on_both_sides_never_hold",
            ),
        ),
    ),
    "A helper's own work": (
        (
            "When a node that is holding borrowed work receives a request of its own, it finishes the borrowed jobs …",
            (
                "own::test_it_finishes_the_borrowed_jobs_already_inside_its_backend_and_then_serves_its_own",
                "own::test_it_hands_back_any_borrowed_request_it_has_not_started",
                "own::test_it_stops_accepting_borrowed_work_until_its_own_queue_is_empty",
                "own::test_its_own_requests_are_its_own_until_they_have_ended_also_those_that_it_has_lent",
                "http::test_a_borrowed_request_that_a_busy_helper_has_not_started_is_answered_with_a_409_offload_returned",
            ),
        ),
        (
            "The owner re-queues whatever came back and runs it.",
            ("own::test_the_owner_re_queues_whatever_came_back_and_runs_it",),
        ),
        (
            "A return is not recorded as a failed request.",
            ("http::test_a_return_is_not_recorded_as_a_failed_request",),
        ),
        (
            "Each time a node's own request waits behind borrowed work, the wait is written to the decision log.",
            ("own::test_each_time_a_nodes_own_request_waits_behind_borrowed_work_the_wait_is_written",),
        ),
    ),
    "Decision log": (
        (
            "Every lending decision is written to the offload_decisions table …, stamped with the router version …, and pruned …",
            (
                "store::test_the_table_has_one_column_for_each_word_of_the_log_and_no_other",
                "store::test_a_row_comes_back_as_it_was_with_its_time_and_the_version_that_wrote_it",
                "store::test_rows_that_are_too_old_or_too_many_are_forgotten_and_samples_with_their_window",
            ),
        ),
        (
            "plan rows on the master, one per owner and helper pair per decision: …",
            (
                "log::test_plan_rows_one_per_owner_and_helper_pair_per_decision",
                "log::test_plan_rows_say_the_trigger",
                "log::test_plan_rows_say_counts_drain_switch_and_service_whose_fit_idle_time_outcome_and_slots",
                "log::test_plan_rows_say_the_reason_for_a_skip",
                "log::test_plan_rows_say_the_reason_of_a_probe",
            ),
        ),
        (
            "dispatch rows on the owner: lease_updated, lease_cleared, lease_refused, lent, and returned …, and held_for_helper …",
            (
                "log::test_dispatch_rows_on_the_owner_have_the_slots_and_how_many_requests_were_out_at_that_moment",
                "log::test_dispatch_rows_say_that_a_lease_was_refused",
                "log::test_held_for_helper_rows_have_the_predicted_finish_the_job_times_and_how_long_the_request_had_waited",
            ),
        ),
        (
            "dispatch rows on the master: relay_refused, with the reason.",
            ("decides::test_the_master_writes_a_relay_refused_row_for_every_lent_request_it_cannot_pass_on",),
        ),
        (
            "helper rows on the helper: native_waited_behind_borrowed …, and borrowed_returned …",
            (
                "log::test_helper_rows_native_waited_behind_borrowed",
                "log::test_helper_rows_borrowed_returned_say_whether_its_own_work_arrived_afterwards",
                "log::test_or_whether_the_helper_was_already_busy_when_the_request_arrived",
            ),
        ),
        (
            "The WebUI Lending tab gathers this log from every node.",
            ("http-log::test_one_query_finds_the_rows_of_every_node",),
        ),
        (
            "Repeated rows are folded into one line with a count and time span, and one row shows every variable of the decision.",
            (
                "log::test_repeated_rows_are_folded_into_one_line_with_a_count_and_time_span_and_one_row_shows_every_variable",
                "folding::test_repeated_rows_are_one_line_with_count_and_time_span",
            ),
        ),
        (
            "The Nodes page lists each node's held requests: requests the router holds …, and requests currently lent to a helper.",
            ("log::test_held_requests_are_those_held_before_a_backend_and_those_lent",),
        ),
        (
            "Each is marked queued (waiting for a free backend slot), held (kept on purpose for a faster helper) or lent.",
            ("log::test_held_requests_are_those_held_before_a_backend_and_those_lent",),
        ),
        (
            "A request that comes back from a helper keeps the time it first arrived.",
            ("log::test_a_request_that_comes_back_from_a_helper_keeps_the_time_it_first_arrived",),
        ),
        (
            "Requests that go straight to a backend are listed only under active requests.",
            ("log::test_held_requests_are_those_held_before_a_backend_and_those_lent",),
        ),
        (
            "A request kept for a faster helper is released as soon as the helper has taken more than its predicted finish plus one job …",
            (
                "hold::test_it_is_released_when_the_helper_has_taken_more_than_its_predicted_finish_plus_one_job",
                "example-b::test_with_40_seconds_left_on_the_owner_r_enters_the_second_slot_at_15_by_the_timer",
            ),
        ),
        (
            "A lent request whose helper has not started answering after three times the predicted … is cut off and served by the owner.",
            (
                "log::test_a_lent_request_not_answered_after_three_times_the_predicted_switch_and_job_time_plus_30_seconds_is_cut_off",
            ),
        ),
        (
            "Leases with no measured speeds, such as probes, have no such limit.",
            ("log::test_leases_with_no_measured_speeds_such_as_probes_have_no_such_limit",),
        ),
    ),
    "Loading the helper model": (
        (
            "When it is set, a helper that holds a different model may load the linked model …, and the load time is part of …",
            (
                "loading::test_when_load_if_unloaded_is_set_a_helper_may_load_the_model_and_the_load_time_is_part_of_the_comparison",
            ),
        ),
        (
            "When it is cleared, the helper takes lent work only while the linked model is already loaded.",
            ("loading::test_when_it_is_cleared_the_helper_takes_lent_work_only_while_the_model_is_loaded",),
        ),
        (
            "A borrowed request that would still need a load on arrival is handed back with 409 offload_returned.",
            ("loading::test_a_borrowed_request_that_would_still_need_a_load_on_arrival_is_handed_back",),
        ),
    ),
    "Reloading the model borrowed work displaced": (
        (
            "Serving a borrowed request can load the helper model, which evicts whatever that helper already had loaded.",
            ("loading::test_serving_a_borrowed_request_can_load_the_helper_model_which_evicts_whatever_was_loaded",),
        ),
        (
            "Nothing restores that on its own: the helper keeps the linked model until its own next request pays the switch cost again.",
            (
                "loading::test_without_the_flag_the_helper_keeps_the_linked_model_until_its_own_next_request_pays_the_switch",
            ),
        ),
        (
            "When it is set, the helper reloads the model it held before, once cluster.offload_restore_delay (default 1.5s) passes …",
            (
                "loading::test_with_restore_after_borrow_the_helper_reloads_the_model_it_held_before_once_the_delay_has_passed",
                "loading::test_the_restore_delay_is_a_setting",
                "loading::test_no_further_borrowed_work_may_arrive_on_either_lane",
            ),
        ),
        (
            "If work is still running at that moment, it checks again every cluster.offload_restore_delay until the node is quiet.",
            (
                "loading::test_if_work_is_still_running_at_that_moment_it_checks_again_every_delay_until_the_node_is_quiet",
            ),
        ),
        (
            "A native request arriving first cancels the pending restore …, and a run of consecutive borrowed requests restores …",
            (
                "loading::test_a_native_request_arriving_first_cancels_the_pending_restore_instead_of_competing_with_it",
                "loading::test_a_native_request_for_the_displaced_model_loads_it_itself",
                "loading::test_a_run_of_consecutive_borrowed_requests_restores_whatever_was_loaded_before_the_run_started",
            ),
        ),
    ),
    "Borrowed work yields to the helper's own requests": (
        (
            "A borrowed request is handed back … but only until the borrowed request claims the runtime.",
            ("own::test_a_borrowed_request_is_handed_back_only_until_it_claims_the_runtime",),
        ),
        (
            "While it is still waiting for a free runtime or for the helper model to load, it can be taken back …",
            ("own::test_while_it_waits_for_a_free_runtime_or_the_model_to_load_it_can_be_taken_back",),
        ),
        (
            "Once it holds the runtime and is generating, it always finishes.",
            ("own::test_once_it_holds_the_runtime_and_is_generating_it_always_finishes",),
        ),
        ("A request handed back is never lent again.", ("own::test_a_request_handed_back_is_never_lent_again",)),
        (
            "If a helper shows no change … for cluster.offload_lent_stall_timeout (default 3m), the master asks the helper …",
            (
                "own::test_after_3_minutes_without_a_change_the_master_asks_the_helper_whether_it_still_runs_borrowed_work",
            ),
        ),
        (
            "A helper that does keeps its large requests.",
            ("own::test_a_helper_that_does_keeps_its_large_requests",),
        ),
        (
            "A helper that does not loses every request lent to it at once, and their owners serve them.",
            (
                "own::test_a_helper_that_does_not_loses_every_request_lent_to_it_at_once_and_their_owners_serve_them",
                "http-back::test_a_request_that_its_helper_has_lost",
            ),
        ),
        (
            "A helper running a build from before this check is treated as busy.",
            ("own::test_a_helper_running_a_build_from_before_this_check_is_treated_as_busy",),
        ),
    ),
    "Linking models that are not identical": (
        (
            "The router cannot verify that. If the two really are different checkpoints, … nothing flags it.",
            (
                "linking::test_a_link_asserts_that_the_helper_can_answer_and_different_checkpoints_are_flagged_by_nothing",
            ),
        ),
        (
            "The picker labels every candidate using data the registry already carries.",
            ("linking::test_the_picker_labels_every_candidate",),
        ),
        (
            "Same weights means the model hash matches the anchor.",
            ("linking::test_same_weights_means_the_model_hash_matches_and_needs_no_acknowledgement",),
        ),
        (
            "Different weights means it does not, and linking such a model for the first time requires an explicit acknowledgement …",
            (
                "linking::test_different_weights_means_it_does_not_and_requires_an_explicit_acknowledgement_before_the_link_is_saved",
            ),
        ),
    ),
    "Upgrading from routing groups": (
        (
            "On upgrade, each pair of members on different nodes becomes two links, one per direction, with loading allowed …",
            (
                "linking::test_on_upgrade_each_pair_of_members_on_different_nodes_becomes_two_links_one_per_direction",
                "linking::test_with_loading_allowed_and_the_old_restore_flag_kept_on_the_link_whose_helper_had_it",
            ),
        ),
        (
            "Lending therefore behaves as before until an operator clears the direction they do not want.",
            (
                "linking::test_lending_therefore_behaves_as_before_until_an_operator_clears_the_direction_they_do_not_want",
            ),
        ),
    ),
    "LLM lending": (
        ("LLM links follow every rule above.", ("backlog::test_both_lanes_use_the_same_lending_rules",)),
        (
            "A text model may be linked only if it serves requests one at a time … and states a context window …",
            (
                "linking::test_a_text_model_may_be_linked_only_if_it_serves_requests_one_at_a_time_and_states_a_context_window",
                "linking::test_one_at_a_time_is_1_or_unset_and_a_window_may_be_stated_in_the_vllm_settings",
            ),
        ),
        (
            "A multimodal model links only with another multimodal model.",
            ("llm::test_a_multimodal_model_links_only_with_another_multimodal_model",),
        ),
        (
            "An ineligible model is listed as a candidate but shown disabled with the reason, never silently omitted.",
            ("linking::test_an_ineligible_model_is_listed_as_a_candidate_but_disabled_with_the_reason",),
        ),
        (
            "A linked model whose config becomes ineligible is skipped at the next lease plan, not just at the next save.",
            ("llm::test_a_linked_model_whose_config_becomes_ineligible_is_skipped_at_the_next_lease_plan",),
        ),
        (
            "A helper is leased only if its context window can hold the mean estimated size of the owner's queued requests.",
            (
                "llm::test_a_helper_is_leased_only_if_its_window_can_hold_the_mean_estimated_size_of_the_queued_requests",
            ),
        ),
        (
            "When a queued request is withdrawn for lending and does not fit the leased helper, the owner runs it itself.",
            ("llm::test_when_a_queued_request_does_not_fit_the_leased_helper_the_owner_runs_it_itself",),
        ),
        (
            "A model with no measured token profile has no size estimate …",
            ("llm::test_a_model_with_no_measured_token_profile_has_no_size_estimate",),
        ),
        (
            "Token counts are estimated, never counted: …",
            (
                "llm::test_token_counts_are_estimated_from_the_body_size_by_a_ratio_measured_from_the_models_own_traffic",
                "llm::test_the_ratio_is_pulled_conservative_by_its_own_measured_spread",
            ),
        ),
        (
            "cluster.scheduling_context_reserve is only the floor …; the rest comes from the same measured history.",
            ("llm::test_the_context_reserve_is_only_the_floor_and_the_rest_comes_from_the_measured_history",),
        ),
        (
            "A streaming (stream: true) request is queued but never withdrawn for lending …",
            (
                "llm::test_a_streaming_request_is_queued_but_never_withdrawn_for_lending",
                "http-lent::test_a_stream_is_never_lent",
            ),
        ),
        (
            "A model with no text link is completely unaffected by any of this: no queue, no gate, no lending.",
            ("llm::test_a_model_with_no_text_link_is_completely_unaffected",),
        ),
    ),
}

OPEN: Final = {
    "The same tab shows each node's build and whether it runs the master's settings, the live leases, and the settings below.": (
        "there are no pages yet; the build is in a node's status, the live leases are in the master's memory"
    ),
}
"""Sentences that nothing holds yet, and why."""
