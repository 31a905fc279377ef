
#define RIDGELINE_STAGE(name) RIDGELINE_STAGE_OF(#name, __COUNTER__)
#define RIDGELINE_STAGE_OF(text, number) RIDGELINE_STAGE_SCOPE(text, number)
#define RIDGELINE_STAGE_SCOPE(text, number)                                   \
    [[maybe_unused]] const ::ridgeline_stages::Scope ridgeline_stage_##number( \
        std::integral_constant<unsigned, ::ridgeline_stages::slot_of(text)>::value);
extern "C" __attribute__((visibility("default"))) void ridgeline_stage_table(int calls) { ::ridgeline_stages::table(calls); }
